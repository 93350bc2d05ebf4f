// Package kazoo has what is known of 2600Hz Kazoo: events of its message bus and
// of the Blackhole socket (Qubicle, ACDc, calls, conferences), its webhooks, and
// its call records. Keys are spelled Dash-Case on the bus and snake_case
// elsewhere; either is read.
package kazoo
