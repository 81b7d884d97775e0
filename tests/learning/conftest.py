import torch

torch.set_num_threads(1)  # two threads give other bits, and crawl when the machine is busy
