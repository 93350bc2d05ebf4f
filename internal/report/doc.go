// Package report has what all reports share: the parameters of their queries, how
// they refuse them, and their CSV. It knows no rows.
package report
