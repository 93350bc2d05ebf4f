// Package selfcheck checks, every five seconds, conditions that a node depends on and
// cannot repair: whether its backends answer, free space on its disk, expiry of its
// certificates, and whether clocks agree. It logs each fault when it begins, every half
// minute while it lasts, and when it ends, and exports metrics. No other behaviour
// depends on the results.
//
// Checker.Run is its only goroutine and ends with its context.
package selfcheck
