"""How this machine is set up for programs that are bound by memory.

``read_machine`` reads facts, ``examine`` says what they mean.  Nothing here imports PyTorch:
it is asked in a process of its own.
"""
