"""Writes the logs of simulated runs with one known fault.

The model is mechanistic and knows nothing of how gdiag judges: a power-law loss with a learning-rate dependent floor, a
sharpness that either stays below the stability limit or does not, layers whose norms add up to the global norm, replicas
whose mean is the reduced value, an fp16 scaler that follows its own rule, GPUs that heat, throttle and slow the step.
"""
