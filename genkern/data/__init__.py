"""Inputs: objects are read, checked and packed; alphabets, content digests, values as bytes, the store."""
