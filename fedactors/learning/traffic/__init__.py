"""Where transforms meet training: on updates at the clients, on their sum and on models at the server."""
