//go:build race

package identity

// raceFactor is the slowdown of the race detector that tests of durations allow.
const raceFactor = 10
