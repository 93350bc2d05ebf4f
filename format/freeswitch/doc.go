// Package freeswitch has what is known of FreeSWITCH: events of the event socket
// (JSON and text/event-plain), mod_callcenter's events, and mod_json_cdr's call
// records in each of its encodings. testdata has captured records with the
// messages and rows they become.
package freeswitch
