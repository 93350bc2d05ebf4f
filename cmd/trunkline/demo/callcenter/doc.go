// Package callcenter simulates a small contact center, for demonstration traffic: agents log in,
// take breaks and calls; callers wait, talk, are transferred or hang up. A seed determines the
// sequence of events.
//
// Two queues represent two sources: "support" produces Trunkline's own format (svc.cc), with
// generic events for its agents; "sales" produces the events of FreeSWITCH's mod_callcenter.
// Names and numbers are fictitious.
//
// It does no I/O, reads no clock and starts no goroutines.
package callcenter
