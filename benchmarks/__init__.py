"""Speed against real peers: every claim is a ratio of two times taken in the same run."""
