"""What a linear classifier saw: contributions of features and positions."""
