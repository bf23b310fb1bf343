"""Copies between host and device, and what feeds them."""
