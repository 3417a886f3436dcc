"""Models of users and of other packages, as models of this package."""
