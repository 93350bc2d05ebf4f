// Package report has the common parts of all reports: query parameters, their errors,
// and CSV. The rows belong to the packages of the reports.
package report
