package service

// ConsumerOf returns the consumer whom a feed notifies of an event.
var ConsumerOf = (*Service).consumerOf
