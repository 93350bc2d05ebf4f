// Package certificate serves the certificate of a pair of files to TLS listeners, reads it again
// after a change, and creates self-signed ones. It starts no goroutine: a caller of Reloader.Reload
// decides how often the files are checked.
package certificate
