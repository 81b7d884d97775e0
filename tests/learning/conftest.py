import torch
from hypothesis import settings

torch.set_num_threads(1)  # two threads give other bits, and crawl when the machine is busy
settings.register_profile("learning", deadline=None)  # the first example pays for imports
settings.load_profile("learning")
