package store

// LeaveEvents has Emit leave all events to what goes on in the background.
func (s *Store) LeaveEvents() { s.emitSlice = 0 }
