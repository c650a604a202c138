"""Reports: one HTML file each, without scripts, with nothing fetched.

page     the pieces of a page, its style, and how it looks on a phone, in the dark and in print
"""
