package e2e

import "testing"

// TestPagesInABrowser reads the pages under /docs as a reader does: from the index to a page, to a section, and by
// the search, which runs under the board's Content-Security-Policy.
func TestPagesInABrowser(t *testing.T) {
	t.Parallel()
	c := embeddedCluster(t)
	b := c.nodes[0].newBoard(t)
	b.open(t, b.url+"/docs")
	b.awaitTrue(t, "the index",
		"document.querySelectorAll('.toc a').length > 30 && document.querySelector('h1').textContent === 'Documentation'")
	b.screenshot(t, "docs-index", 1440, 900, "light")

	b.mustEval(t, `document.querySelector('article a[href="/docs/install#helm"]').click()`, nil)
	b.awaitTrue(t, "the section of another page",
		"location.pathname === '/docs/install' && location.hash === '#helm' && document.getElementById('helm')")

	b.awaitTrue(t, "the search", "!document.querySelector('form.search').hidden") // its script has run
	b.mustEval(t, `{ const field = document.getElementById('search'); field.value = 'TrunklineDiskFull'; field.dispatchEvent(new Event('input')); }`,
		nil)
	b.awaitTrue(t, "what the search found",
		"document.querySelector('#found a')?.textContent.includes('TrunklineDiskFull') && document.querySelector('article').hidden")
	b.screenshot(t, "docs-search", 1440, 900, "dark")
	b.mustEval(t, "document.querySelector('#found a').click()", nil)
	b.awaitTrue(t, "the page that was found",
		"location.pathname === '/docs/runbook' && location.hash === '#trunklinediskfull' && !document.querySelector('article').hidden")
	b.checkPage(t)
}
