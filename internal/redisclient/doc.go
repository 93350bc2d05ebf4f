// Package redisclient has the settings of Redis, and opens a client of it: one
// server, the master that Sentinels name, or a Redis Cluster. Its users
// see a redis.UniversalClient and do not know which. Because it may be a Cluster,
// the keys of a script or transaction share a hash tag, and pipelines are not
// atomic.
//
// A client has connections and, with Sentinels, a goroutine that
// follows their announcements; Close ends them. An address that does not answer
// is an error of a command, not of New. The embedded Redis is app/backend's.
package redisclient
