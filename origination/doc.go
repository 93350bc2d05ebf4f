// Package origination is click to call (specification, area B): it rings the
// extension of the user who asks, has the destination dialled once they have
// answered, and knows how far each call has come.
//
// If this is your first change, read driver.go (what a phone platform has to
// do), place.go and book.go. A call is stored before its platform is asked to
// ring anybody. From then on it is in the book of one node, which takes its
// driver's reports, writes them, and announces what is written as
// call.progress, in order for each call and at least once. Whoever asks how far
// a call is reads the database, on any node.
//
// It refuses to ring anybody but the caller, to dial what the account's rules
// forbid, to let a call go back to a state it has left, and to decide what a
// platform's legs and records look like: those come through Kafka.
//
// A node that lives says so in the database every quarter of Config.Lease; the
// calls of one that does not are taken over by whoever notices first, or at once
// by its next life where it is alone. A node that was away for so long finds its
// calls taken when it next writes one, and lets go of them.
//
// Run has four goroutines (writer, announcer, housekeeper, purger) beside the
// driver's Follow; they end after Follow has, when everything is stored and
// announced or 5 s are over. What waits for the database shares one transaction,
// orders before steps. Before Run has begun, and at Config.MaxCalls open calls, an
// order is answered with fault.Unavailable. While the database is away orders
// are too, and steps wait in the book; while Kafka is away they wait to be
// announced, and ended calls stay in the book.
//
// Lock order: a user's turn in firsts, then a driver's locks, then book.mu.
// Nothing is called with book.mu held but the metrics.
package origination
