// Package redisclient has the settings of Redis, and opens a client: of one server, of
// the master that Sentinels report, or of a Redis Cluster. Its users have a
// redis.UniversalClient and must work with all three. Because it may be a Cluster, the
// keys of a script or transaction share a hash tag, and pipelines are not atomic.
//
// A NodeQuestion asks the other nodes by publish and subscribe; HolderRequests carries a request to the one node that
// holds what it is about.
//
// A client has connections and, with Sentinels, a goroutine that follows their
// announcements; Close ends them. An address that does not answer is an error of a
// command, not of New. The embedded Redis belongs to app/backend.
package redisclient
