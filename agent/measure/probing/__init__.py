"""What test runs are asked besides their outcomes: coverage, spectra for fault localisation, values of variables."""
