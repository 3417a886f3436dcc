"""Transformers before and after feature maps: windows, channels, scales, maps, several views."""
