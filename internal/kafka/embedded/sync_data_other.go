//go:build !linux

package embedded

import "os"

// syncData syncs a file. Other systems than Linux have no portable call that leaves out its times.
func syncData(f *os.File) error { return f.Sync() }
