"""The array API standard: its signatures, calls of its functions with drawn arguments, and the tests."""
