// Package report has the common parts of all reports: query parameters, their errors, conditions of SQL, pages
// and CSV. The rows belong to the packages of the reports.
package report
