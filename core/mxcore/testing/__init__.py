"""Tools to test operators, devices and plugins: samples, gradient checks and the conformance kit."""
