from jinjarun.serving.vllm import *  # temporary
