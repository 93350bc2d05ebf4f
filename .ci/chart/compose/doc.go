// Package compose holds the test of deploy/compose.yaml, which it loads with the library of
// `docker compose`.
package compose
