// Package deadletter lists the dead letters, sends them back to their raw topic and discards
// them, for the command line and for the API.
//
// A log has no place to delete a record from. What is done with letters is therefore a record of
// its own, in the letters' partition of cc.dead: a settlement, with the offsets of the letters.
// Who scans a partition to its end knows which letters are open, and retention deletes a
// settlement after its letters. A letter is sent before it is settled: a process that is killed
// between both leaves it open, and it may be sent again.
//
// No goroutines but those of the consumer group of RetryAll, which ends with it. Letters hold one
// lock, which lets one request of the process at a time look whether a letter is open and settle it;
// AccountLetters let one request of a tenant at a time scan, before that lock, and a wait for it is
// bounded by the request's context.
package deadletter
