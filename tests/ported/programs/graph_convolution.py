"""Graph convolution by index_add: nodes of two communities, labelled from a few of them."""

import math

import numpy as np
import torch
import torch.nn.functional as F
from torch.nn.parameter import Parameter


class GraphConvolution(torch.nn.Module):
    """The sum of what the neighbours are, normalised by degrees."""

    def __init__(self, in_features, out_features, bias=True):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(torch.empty(in_features, out_features, dtype=torch.float64))
        if bias:
            self.bias = Parameter(torch.empty(out_features, dtype=torch.float64))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        stdv = 1.0 / math.sqrt(self.weight.size(1))
        self.weight.data.uniform_(-stdv, stdv)
        if self.bias is not None:
            self.bias.data.uniform_(-stdv, stdv)

    def forward(self, input, edge_index, edge_weight):
        support = torch.mm(input, self.weight)
        source, target = edge_index
        messages = support.index_select(0, source) * edge_weight.unsqueeze(-1)
        output = torch.zeros_like(support).index_add_(0, target, messages)
        return output if self.bias is None else output + self.bias

    def __repr__(self):
        return f"{self.__class__.__name__} ({self.in_features} -> {self.out_features})"


class GCN(torch.nn.Module):
    def __init__(self, nfeat, nhid, nclass):
        super().__init__()
        self.gc1 = GraphConvolution(nfeat, nhid)
        self.gc2 = GraphConvolution(nhid, nclass, bias=False)

    def forward(self, x, edge_index, edge_weight):
        x = F.relu(self.gc1(x, edge_index, edge_weight))
        x = F.dropout(x, 0.0, training=self.training)
        return F.log_softmax(self.gc2(x, edge_index, edge_weight), dim=1)


def graph(rng, nodes):
    """Edges both ways, with those from each node to itself, and their weights."""
    labels = np.arange(nodes) % 2
    likely = np.where(labels[:, None] == labels, 0.3, 0.04)
    upper = np.triu(rng.random((nodes, nodes)) < likely, 1)
    edge_index = torch.from_numpy(np.argwhere(upper | upper.T | np.eye(nodes, dtype=bool))).t()
    row, col = edge_index[0], edge_index[1]
    deg = torch.zeros(nodes, dtype=torch.float64).scatter_add_(0, col, torch.ones(len(col)).double())
    deg_inv_sqrt = deg.pow(-0.5)
    deg_inv_sqrt[deg_inv_sqrt == float("inf")] = 0
    return torch.LongTensor(labels), edge_index, deg_inv_sqrt[row] * deg_inv_sqrt[col]


def main():
    rng = np.random.default_rng(8)
    labels, edge_index, edge_weight = graph(rng, 40)
    features = torch.from_numpy(rng.standard_normal((40, 8)))
    features = F.normalize(features + 0.5 * labels.unsqueeze(1), p=2, dim=1)
    idx_train, idx_val = torch.arange(8), torch.LongTensor(range(20, 40))
    model = GCN(8, 6, 2)
    for p in model.parameters():
        p.data.copy_(torch.from_numpy(rng.uniform(-0.5, 0.5, tuple(p.shape))))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=5e-4)
    losses = []
    for _ in range(25):
        model.train()
        optimizer.zero_grad()
        output = model(features, edge_index, edge_weight)
        loss_train = F.nll_loss(output[idx_train], labels[idx_train])
        loss_train.backward()
        optimizer.step()
        model.eval()
        output = model(features, edge_index, edge_weight)
        loss_val = F.nll_loss(output[idx_val], labels[idx_val])
        preds = output[idx_val].max(1)[1].type_as(labels)
        correct = preds.eq(labels[idx_val]).double().sum()
        losses += [loss_train.item(), loss_val.item(), (correct / len(idx_val)).item()]
    return losses


if __name__ == "__main__":
    print(main())
