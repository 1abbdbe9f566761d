package code

type status interface{ Put() }

type api interface {
	status
	Status() status
}

type holder struct{ api api }

func chained(h holder, put func()) {
	h.api.Put()
	h.api.Status().Put()
	put()
}
