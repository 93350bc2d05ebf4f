// Package selfcheck checks, every five seconds, what a node depends on and
// cannot repair itself: whether its backends answer, free space on its disk,
// expiry of its certificates, and whether clocks agree. It logs each fault
// when it begins, every half minute while it lasts, and when it ends, and keeps
// metrics. Nothing depends on its findings.
//
// Checker.Run is its only goroutine and ends with its context.
package selfcheck
