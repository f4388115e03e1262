# source: none; two values come out of one queue, one after the other
# mechanism: questions are moved when they are taken out of a queue, the answers behind them are not
# phase: loss; failing op: aten::sub.Tensor
# expect: raises
from collections import deque

import torch
from torch import nn


def fill(pages):
    queue = deque()
    for _ in range(pages):
        queue.append(torch.randn(3, 2))
        queue.append(torch.randn(3))
    return queue


def distance(said, answers):
    return (answers - said).square().mean()  # RAISE


def study(net, queue):
    while queue:
        questions = queue.popleft().cuda()
        answers = queue.popleft()  # ROOT
        said = net(questions).squeeze(1)
        distance(said, answers).backward()  # ALSO


study(nn.Linear(2, 1).cuda(), fill(2))
