package apiserver

// rememberedObjects is how many objects are remembered at least, to share with their next version.
const rememberedObjects = 4096

// lately remembers what was put last under each key, of the last rememberedObjects keys at least. It is for one goroutine at a time.
type lately[K comparable, V any] struct {
	// When recent is full, it takes the place of older.
	recent, older map[K]V
}

func (l *lately[K, V]) get(key K) (V, bool) {
	if v, ok := l.recent[key]; ok {
		return v, true
	}
	v, ok := l.older[key]
	return v, ok
}

func (l *lately[K, V]) put(key K, value V) {
	if len(l.recent) >= rememberedObjects {
		l.recent, l.older = nil, l.recent
	}
	if l.recent == nil {
		l.recent = map[K]V{}
	}
	l.recent[key] = value
}
