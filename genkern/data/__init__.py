"""What an input is: objects read, checked and packed, alphabets, content digests, values as bytes, the store."""
