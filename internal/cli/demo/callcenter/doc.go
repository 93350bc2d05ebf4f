// Package callcenter plays a small, believable contact center, for
// demonstration traffic: agents log in, take breaks and calls; callers wait,
// talk, are transferred or give up. What happens follows from a seed alone.
//
// Two queues stand for two sources: "support" speaks the shape (svc.cc) with
// generic events for its agents, "sales" is FreeSWITCH's mod_callcenter. Names
// and numbers are made up and belong to nobody.
//
// It sends nothing and reads no clock; it has no goroutines.
package callcenter
