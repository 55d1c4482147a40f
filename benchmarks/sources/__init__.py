"""Where instances come from: one adapter a dataset."""
