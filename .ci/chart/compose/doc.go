// Package compose holds the test of deploy/compose.yaml, which it loads with
// the library that `docker compose` is made of.
package compose
