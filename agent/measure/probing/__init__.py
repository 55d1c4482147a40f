"""What test runs reveal besides outcomes: coverage, spectra for fault localisation, values of variables."""
