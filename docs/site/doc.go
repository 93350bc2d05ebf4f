// Package site makes HTML of the pages in docs: for the program, which serves them under /docs beside
// the board, and as files for any web server (make site). Both have the same pages, the navigation of
// README.md's groups, and a search over all sections that runs in the browser.
//
// A page is rendered at its first request; the package starts no goroutine and keeps no locks.
//
// # Files
//
//   - site.go: the pages, their addresses in the program and as files, the frame around a page
//   - markdown.go: parsing, headings' anchors as GitHub makes them, sections, links
package site
