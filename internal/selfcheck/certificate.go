package selfcheck

import "time"

// expiryWarning is the time before the expiry of a certificate from which it is logged.
const expiryWarning = 14 * 24 * time.Hour

func (c *Checker) checkCertificates() {
	for _, certificate := range c.cfg.Certificates {
		c.checkCertificate(certificate)
	}
}

func (c *Checker) checkCertificate(certificate Certificate) {
	loaded, err := certificate.Load()
	if err != nil {
		return // a file that is being replaced is read at the next check
	}
	end := loaded.Leaf.NotAfter
	c.metrics.expiry.WithLabelValues(certificate.Setting).Set(float64(end.Unix()))
	left := time.Until(end)
	const advice = "replace the files, they are read again without a restart"
	subject := "the certificate of " + certificate.Setting
	if c.report(subject, left > 0) {
		c.log.Warn("the certificate has expired: "+advice, "setting", certificate.Setting, "file", certificate.File, "expired", end)
	}
	soon := subject + ", soon"
	if left <= 0 || left >= expiryWarning {
		delete(c.faults, soon)
		return
	}
	if c.faults[soon] == nil { // once, until it is replaced
		c.faults[soon] = &fault{}
		c.log.Warn("the certificate expires soon: "+advice, "setting", certificate.Setting, "file", certificate.File, "expires", end)
	}
}
