package app

import (
	"crypto/tls"
	"time"
)

// expirySoon is when a certificate's end is near enough to be told in the log.
const expirySoon = 14 * 24 * time.Hour

func (w *watch) checkCertificates() {
	if w.certs != nil {
		w.checkCertificate(w.certs.pair, w.certs.loaded.Load())
	}
	for _, p := range w.pairs {
		if loaded, err := p.load(); err == nil { // a file being replaced is read the next time
			w.checkCertificate(p, loaded)
		}
	}
}

func (w *watch) checkCertificate(p pair, c *tls.Certificate) {
	end := c.Leaf.NotAfter
	w.metrics.expiry.WithLabelValues(p.key).Set(float64(end.Unix()))
	left := time.Until(end)
	mend := "replace the files, they are read again without a restart"
	if p.key != "tls.cert_file" {
		mend = "replace the files and restart"
	}
	what := "the certificate of " + p.key
	if w.note(what, left > 0) {
		w.log.Warn("the certificate has expired: "+mend, "setting", p.key, "file", p.certFile, "expired", end)
	}
	soon := what + ", soon"
	if left > 0 && left < expirySoon {
		if w.faults[soon] == nil { // once, until it is replaced
			w.faults[soon] = &lastingFault{}
			w.log.Warn("the certificate expires soon: "+mend, "setting", p.key, "file", p.certFile, "expires", end)
		}
	} else {
		delete(w.faults, soon)
	}
}
