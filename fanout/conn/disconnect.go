package conn

// Disconnect is the reason for which the server closes a connection.
type Disconnect struct {
	Code      int    // close code, RFC 6455 section 7.4, or of the application (4000 to 4999)
	Reason    string // for people and logs
	Reconnect bool   // whether a retry of the same request may succeed
}
