"""The data of the server: samples taken from the clients, drawn glyphs, or photographs of another data set."""
