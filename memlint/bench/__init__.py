"""Benches: how much a rule's bad form costs on the machine at hand, and what its memory is like.

``declare`` and ``pair`` are what a rule needs to state its bench; ``plan`` says what is run,
``lab`` measures, ``run`` goes through all; ``experiments`` are those that belong to no rule."""
