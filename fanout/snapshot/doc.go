// Package snapshot computes the state of the contact center's floor: which agents are at
// work and in what state, and which calls are in a queue or being answered. It
// is a pure fold over the normalized messages of one partition: the same
// messages in the same order give the same state, on every node and after every restart.
//
// It refuses to guess. Of a message's data it reads the few fields that name an
// agent, a call or a queue and say what became of them, in each format's own
// spelling; a message that says nothing of the kind, or is malformed, changes
// nothing. States and statuses of agents are the source's own words; where a
// generic event gives none, its type does (own.go). Calls have three states of
// ours, since every source has other words for them (transitions.go).
//
// Entries without a message expire: an agent after
// Config.AgentAge, a call after Config.CallAge, counted in the time of ids. A
// switch that loses the end of a call leaves no call for ever.
//
// No goroutines and no locks: a State belongs to whoever guards it.
//
// When it is full, for one account or for the memory of all states (Budget), the entry whose last message is oldest is dropped and counted. Ids and words
// over maxText bytes are taken as absent, so an entry's size is bounded too.
package snapshot
