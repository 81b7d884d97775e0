"""What each device did and when: a row per device, of a thousand devices too, packed small enough for a page."""
