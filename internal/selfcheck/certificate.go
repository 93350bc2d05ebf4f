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
	remaining := time.Until(end)
	const advice = "replace the files, they are read again without a restart"
	subject := "the certificate of " + certificate.Setting
	if c.recordHealth(subject, remaining > 0) {
		c.log.Warn("the certificate has expired: "+advice, "setting", certificate.Setting, "file", certificate.File,
			"expired", end)
	}

	expirySubject := subject + ", soon"
	if remaining <= 0 || remaining >= expiryWarning {
		delete(c.faults, expirySubject)
		return
	}

	if c.faults[expirySubject] == nil { // once, until it is replaced
		c.faults[expirySubject] = &lastingFault{}
		c.log.Warn("the certificate expires soon: "+advice, "setting", certificate.Setting, "file", certificate.File,
			"expires", end)
	}
}
