// Package deploy_test holds what is in deploy/ against the program: what the
// dashboards and alerts ask for must exist, what the examples set must be
// settings, and what a tool of the operator's can check is checked with it.
package deploy_test
