"""A language model of words by an LSTM: tied weights, truncated backpropagation, clipped gradients."""

import math

import numpy as np
import torch
import torch.nn as nn

TEXT = "the cat sat on the mat . the dog sat on the log . a cat saw the dog and the dog saw a cat ."


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, nlayers):
        super().__init__()
        self.drop = nn.Dropout(0.0)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)
        self.decoder.weight = self.encoder.weight
        self.nhid, self.nlayers, self.ntoken = nhid, nlayers, ntoken

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return nn.functional.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return (
            weight.new_zeros(self.nlayers, bsz, self.nhid),
            weight.new_zeros(self.nlayers, bsz, self.nhid),
        )


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


def main():
    rng = np.random.default_rng(4)
    words = sorted(set(TEXT.split()))
    ids = torch.tensor([words.index(word) for word in TEXT.split() * 6]).type(torch.int64)
    train_data = batchify(ids, 4)
    model = RNNModel(len(words), 10, 10, 2).double()
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.uniform(-0.3, 0.3, tuple(p.shape))))
    criterion = nn.NLLLoss()
    lr, losses = 2.0, []
    for _ in range(3):
        model.train()
        hidden = model.init_hidden(4)
        for i in range(0, train_data.size(0) - 1, 9):
            data, targets = get_batch(train_data, i, 9)
            model.zero_grad()
            hidden = repackage_hidden(hidden)
            output, hidden = model(data, hidden)
            loss = criterion(output, targets)
            loss.backward()
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
            for p in model.parameters():
                p.data.add_(p.grad, alpha=-lr)
            losses += [loss.item(), norm.item()]
        losses.append(math.exp(loss.item()))
        lr /= 1.5
    return losses


if __name__ == "__main__":
    print(main())
