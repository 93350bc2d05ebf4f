// Package setting has the types of setting values: how each is parsed, printed
// and masked, and how problems of values are collected.
//
// A package that has settings declares them in its settings.go:
//
//	type Settings struct {
//		QueueBytes setting.Bytes `yaml:"queue_bytes" doc:"bytes of memory that …"`
//	}
//
//	func DefaultSettings() Settings { return Settings{QueueBytes: 1 << 20} }
//
//	func (s Settings) Validate(c *setting.Check) {
//		c.Must(s.QueueBytes >= 4<<10, "queue_bytes", "must be at least 4KiB, is %s", s.QueueBytes)
//	}
//
// Package settings composes the groups and reads file, environment and flags. This
// package opens nothing, keeps no state and starts no goroutine. It never prints
// a secret.
package setting
